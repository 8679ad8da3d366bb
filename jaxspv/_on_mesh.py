"""The functions that run on a sharded graph; imported when one is first called."""

from .algorithms.bfs.mesh import sharded_bfs
from .algorithms.components import sharded_connected_components
from .algorithms.pagerank.mesh import sharded_pagerank
from .algorithms.sssp.mesh import sharded_sssp
from .algorithms.triangles import sharded_triangle_count
from .ops.products import mesh

FUNCTIONS = {  # what public functions call for one
    "mxv": mesh.sharded_mxv,
    "vxm": mesh.sharded_vxm,
    "mxm": mesh.sharded_mxm,
    "row_sharded_mxm": mesh.row_sharded_mxm,
    "reduce": mesh.sharded_reduce,
    "apply": mesh.sharded_apply,
    "bfs": sharded_bfs,
    "triangle_count": sharded_triangle_count,
    "connected_components": sharded_connected_components,
    "sssp": sharded_sssp,
    "pagerank": sharded_pagerank,
}


def _refused(name):
    def refuse(*_, **__):
        raise NotImplementedError(f"{name} over tuples runs on one device: call `unshard()`.")

    return refuse


ON_TUPLES = {name: _refused(name) for name in FUNCTIONS}
ON_TUPLES |= {"mxv": mesh.sharded_mxv, "vxm": mesh.sharded_vxm}
