"""temporary"""


def stream_of(source):
    """x"""
    return source
