"""What every test may use."""

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.postgres",)

# How fast examples are made depends on what else the machine does, and says nothing about the program.
settings.register_profile("tidewheel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidewheel")
