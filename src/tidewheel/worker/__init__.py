"""The worker: takes jobs from a store and runs them, isolated, killable, never two at once.

    supervisor      registers, beats, owns the kernel timer that ends everything when the lease does; runs no user code
    ├── runners      the user's async functions, in an event loop; each claims, runs and settles by itself
    └── host        claims for `slots`, and runs no user code either
        └── launcher   loads the app once; each of its children runs one task at a time
            ├── pool child   plain functions
            └── command      any executable

A child dies with its parent (a signal of the kernel, not a promise of ours), so when the supervisor is killed, by
whoever it may be, nothing of the worker is left to overlap with the next attempt.
"""
