import logging

import hypothesis

# No test is timed: machines are busy.
hypothesis.settings.register_profile(
    'tracon', deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile('tracon')

# Without any handler logging prints to stderr, and a test that provokes a
# warning looks like one that fails.
logging.getLogger().addHandler(logging.NullHandler())
