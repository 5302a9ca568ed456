"""The command ``tide``: one file a group of commands."""
