"""The page at `/`: models at work, to look at and to try.

`static` has its files: HTML, a style sheet and JavaScript without a framework, which need no
build. The plots are SVG of its own (`axes.js`, `charts.js`).

It may import nothing of the other packages.
It is imported by `service.web.routes`.
"""
