"""Loss of power, simulated: what a server wrote and did not sync is dropped, kept or torn."""
