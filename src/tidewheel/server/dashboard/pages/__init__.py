"""The pages: what each of them shows, and what its forms do."""
