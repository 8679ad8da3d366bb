"""What traversals share: the state a loop carries, rotating control words, appends to queues."""
