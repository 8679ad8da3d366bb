"""Compiles the C++ kernels into the wheel; where there is no compiler the wheel is pure Python."""

import importlib.util
import os
import pathlib
import sysconfig
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Adds the library and the tag of the platform: one wheel serves every version of Python."""

    def initialize(self, version, build_data):
        folder = pathlib.Path(self.root, "jaxspv", "native")
        spec = importlib.util.spec_from_file_location("jaxspv_build", folder / "build.py")
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        editable = version == "editable"
        elsewhere = bool(os.environ.get("JAXSPV_REQUIRE_NATIVE"))  # a wheel for other machines
        try:
            into = folder if editable else pathlib.Path(tempfile.mkdtemp())
            wanted = build.extensions() if elsewhere else build.supported()[:1]
            made = [build.build(into, extra) for extra in wanted]
        except build.NoCompiler as why:
            if elsewhere:
                raise
            self.app.display_warning(f"jaxspv is built without its C++ kernels: {why}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        if not editable:
            for library in made:
                build_data["force_include"][str(library)] = f"jaxspv/native/{library.name}"
