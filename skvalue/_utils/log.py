"""Lines for the logger "skvalue", which those see who set its level to INFO."""

import logging


def log_engine(estimator, method, engine, device):
    """Say which engine computed, and on which device.

    Parameters
    ----------
    estimator : object
        The estimator.
    method : str
        Name of its method that computed.
    engine, device : str
        Names of the engine and the device.
    """
    logging.getLogger("skvalue").info(
        "%s.%s: engine %r on device %r.",
        type(estimator).__name__,
        method,
        engine,
        device,
    )
