"""Tidewheel runs jobs on time."""
