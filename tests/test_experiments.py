"""The experiments show what the paper says they show."""

import pytest
import torch

from experiments import symmetric


@pytest.mark.parametrize("seed", range(5))
def test_evidence_finds_the_symmetry(seed):
    fits, models, _ = symmetric.run(seed)
    ours, plain = fits["invariant"], fits["non-invariant"]
    assert ours.log_evidence > plain.log_evidence
    assert ours.elbo > plain.elbo
    assert ours.test_rmse < plain.test_rmse
    assert plain.train_rmse <= ours.train_rmse
    for fit in fits.values():
        assert fit.log_evidence - 0.1 < fit.elbo <= fit.log_evidence + 1e-6
    x = torch.tensor([[0.3, -1.2]], dtype=torch.float64)
    swapped = models["invariant"].predict(x.flip(1)).mean
    torch.testing.assert_close(models["invariant"].predict(x).mean, swapped)


def test_figure_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["symmetric", "--seed", "0", "--out", str(tmp_path)])
    monkeypatch.setattr(symmetric, "STEPS", 2)
    symmetric.main()
    assert (tmp_path / "symmetric-0.png").stat().st_size > 10_000
    assert (tmp_path / "symmetric-0.json").exists()
    assert "log evidence" in capsys.readouterr().out
