"""The page at `/`: models at work, to look at and to try.

`static` has its files: HTML, a style sheet and JavaScript without a framework. The plots are drawn
by uPlot, which `plots` fetches where a wheel or an image is built; the page works without.

It may import nothing of the other packages.
It is imported by `service.web.routes`.
"""
