import hypothesis

# No test is timed: machines are busy.
hypothesis.settings.register_profile(
    'tracon', deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile('tracon')
