"""The frontier machine of traversals: carried state, rotating control words, queues, worklists."""
