"""API keys: where they are stored, what they allow, and their quotas."""
