"""What a server reports about its work: counters, ids of requests, and the diagnostic log."""
