"""What the user writes: programs, holes, chats and patterns, and the nodes that they record."""
