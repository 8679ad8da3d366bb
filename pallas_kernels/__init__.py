"""Fast paths: GPU kernels that take arrays and give arrays. Imports jax only, nothing of jaxspv.

The contract of a kernel: it is written once in SIMT form over the primitives of `simt/launch.py`,
runs on an NVIDIA GPU (Mosaic GPU) or interpreted on the host (`device.Grid`), returns an int32
`status` (0: the result is right; otherwise a grid barrier expired and the result means nothing),
refuses vmap, needs no zeroed workspace and launches at most as many CTAs as the device holds
together. The kernels over a CSR (`csr_spmv`, `csr_vjp`, `tight_edges`) and `betweenness` have no
grid barrier: no status, and any number of CTAs.

A graph is given by indptr int32[n + 1] and indices int32[nnz], in any order: edges v -> indices[i],
indptr[v] <= i < indptr[v + 1]. A kernel over several GPUs is called inside a `shard_map`; `axes`
are all axes of the mesh in their order. It takes indptr int32[places + 1] and indices int32[nse] of
the rows of this device's places; a column is a place among those of all devices, numbered device by
device; positions int32[n] is the place of each vertex, the same on every device.

The map of the folders: `CONTRIBUTING.md`. How many CTAs and how much shared memory a launch asks
for: `simt/device.py`. Constants that are measured for a GPU: `tuning.py`.
"""
