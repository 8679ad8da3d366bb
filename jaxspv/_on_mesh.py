"""The functions that run on a sharded graph; imported when one is first called."""

from .algorithms.bfs.mesh import sharded_bfs
from .algorithms.components.mesh import sharded_connected_components
from .algorithms.pagerank.mesh import sharded_pagerank
from .algorithms.sssp.mesh import sharded_sssp
from .algorithms.triangles.mesh import sharded_triangle_count
from .ops.products.mesh import (
    row_sharded_mxm,
    sharded_apply,
    sharded_mxm,
    sharded_mxv,
    sharded_reduce,
    sharded_vxm,
)

FUNCTIONS = {  # what public functions call for one
    "mxv": sharded_mxv,
    "vxm": sharded_vxm,
    "mxm": sharded_mxm,
    "row_sharded_mxm": row_sharded_mxm,
    "reduce": sharded_reduce,
    "apply": sharded_apply,
    "bfs": sharded_bfs,
    "triangle_count": sharded_triangle_count,
    "connected_components": sharded_connected_components,
    "sssp": sharded_sssp,
    "pagerank": sharded_pagerank,
}
