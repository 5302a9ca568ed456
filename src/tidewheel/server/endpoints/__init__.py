"""What the endpoints do, one file a group; `server.table` lists them all."""
