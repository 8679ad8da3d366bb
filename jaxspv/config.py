"""Settings: threads, compilers' options, compiled programs on disk, what is cached of graphs."""

from ._core.eager.kept import keep_prepared as keep_prepared
from ._core.eager.programs import enable_compilation_cache as enable_compilation_cache
from ._core.eager.programs import gpu_compiler_options as gpu_compiler_options
from .native.bind import set_num_threads as set_num_threads
