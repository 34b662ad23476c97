"""Engines complete chats. `open_engine` imports the one that is asked for, and no other."""
