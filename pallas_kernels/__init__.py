"""Fast paths: GPU kernels that take arrays and give arrays. Imports jax only, nothing of jaxspv.

The contract of a kernel: it is written once in SIMT form over the primitives of `simt/launch.py`,
runs on an NVIDIA GPU (Mosaic GPU) or interpreted on the host (`interpret=True`), returns an int32
`status` (0: the result is right; otherwise a grid barrier expired and the result means nothing),
refuses vmap, needs no zeroed workspace and keeps at most as many CTAs as the device holds at
once. The kernels over a CSR (`csr_spmv`, `csr_vjp`, `tight_edges`) have no grid barrier: no
status, and any number of CTAs.
"""
