"""Which module has which study: the names that `python -m benchmarks` takes."""

_MODULES = {
    "absorb": ("absorb",),
    "asset": ("asset", "asset_flat", "asset_stream"),
    "asset_dimensions": ("p5_figure_1", "p5_figure_2"),
    "changes": ("flips", "rotations", "scales"),
    "columns": ("columns",),
    "largest_requests": ("largest_requests",),
    "many_classes": ("many_classes",),
    "p1_tables": ("p1_tables", "last_steps"),
    "p2_tables": ("p2_series", "effect_of_c"),
    "p4_tables": ("p4_tables",),
    "raw_tables": ("raw_tables",),
    "sampled_table": ("sampled_table",),
    "service": ("start", "first_fits", "mixed", "latency", "challengers", "beside_river", "soak"),
    "service_calls": ("calls",),
    "service_rates": (
        *("singles", "websockets", "batches", "later"),
        *("workers", "predicting_workers", "paced_workers"),
    ),
    "single_rows": ("single_rows",),
    "solvers": ("solvers", "batch_solvers", "growing"),
    "streams": ("streams",),
    "unlike": ("unlike",),
}
STUDIES = {study: module for module, studies in _MODULES.items() for study in studies}
