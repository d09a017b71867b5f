"""The paper's own method: hyperparameters and q(u) learned together from minibatches.

Estimators call `fit_stochastic`; everything else is for readers of sections 4.2 to 4.5.
"""
