"""Graph algorithms beside compiled libraries, each library a process under a time limit."""
