"""Which module has which study: the names that `python -m benchmarks` takes."""

_MODULES = {
    "absorb": ("absorb",),
    "asset": ("asset", "asset_flat", "asset_stream"),
    "asset_dimensions": ("p5_figure_1", "p5_figure_2"),
    "calibration": ("calibration", "intervals"),
    "changes": ("flips", "rotations", "scales"),
    "columns": ("columns",),
    "fleet": ("fleet", "fleet_views", "fleet_takeovers", "fleet_spread"),
    "largest_requests": ("largest_requests",),
    "late_labels": ("late_labels",),
    "many_classes": ("many_classes",),
    "novelty": ("novelty",),
    "p1_tables": ("p1_tables", "last_steps"),
    "p2_tables": ("p2_series", "effect_of_c"),
    "p4_tables": ("p4_tables",),
    "raw_tables": ("raw_tables",),
    "regression": ("regression", "regression_streams"),
    "sampled_table": ("sampled_table",),
    "semiparametric": ("semiparametric", "components", "convergence", "penalties"),
    "service": ("start", "first_fits", "mixed", "latency", "challengers", "beside_river", "soak"),
    "service_calls": ("calls",),
    "service_rates": (
        *("singles", "websockets", "batches", "later"),
        *("workers", "predicting_workers", "paced_workers"),
    ),
    "several_learners": ("several_learners",),
    "single_rows": ("single_rows",),
    "solvers": ("solvers", "batch_solvers", "growing"),
    "streams": ("streams",),
    "unlike": ("unlike",),
}
STUDIES = {study: module for module, studies in _MODULES.items() for study in studies}
