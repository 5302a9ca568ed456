"""What keeps a task to itself: one file a layer."""
