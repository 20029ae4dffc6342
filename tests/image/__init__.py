"""The image, built from the Dockerfile as it is and run as README says: `make image-test`.

No registry is needed: podman comes from Debian, and base images are made of Debian's packages and
a Python of this machine. Needs root and Debian; elsewhere the tests are skipped, and say why.
"""
