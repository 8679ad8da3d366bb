// What `bind.py` asks of the library itself.
#include "ffi.h"

JAXSPV_EXPORT const char* jaxspv_handlers() { return jaxspv::handler_names().c_str(); }
JAXSPV_EXPORT void jaxspv_set_num_threads(int most) { jaxspv::thread_limit() = most; }
