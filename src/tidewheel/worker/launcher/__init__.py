"""The launcher: a process that has loaded the app once, and forks from itself whatever the host asks for.

Each child of the launcher is the init of a tree of its own (`init`). It puts the layers of the sandbox on, starts the
body (a runner of plain functions, or a command), passes signals on to it, and ends with all that the body left behind.

    host  ══  a socket that keeps messages apart, with descriptors passed along
    └── launcher
        └── init     one a tree; reports over the same socket
            └── body     a runner, or the command

The launcher has one thread and no event loop; all it does is fork, pass signals on, and reap.
"""
