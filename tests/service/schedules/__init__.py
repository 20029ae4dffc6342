"""Random schedules over one server's writer, and a checker that reads its files by itself."""
