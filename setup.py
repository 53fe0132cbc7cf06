"""The one part that is compiled; everything else about the package is in pyproject.toml."""

from setuptools import Extension, setup

ENGINE = "src/dragoman/inference/cpu"
# Python's own -fwrapv would keep loops over int from being vectorised.
FLAGS = """
    -O3 -fno-wrapv -fno-math-errno -fno-trapping-math -fassociative-math -fno-signed-zeros
    -freciprocal-math -ffinite-math-only
"""

setup(
    ext_modules=[
        Extension(
            "dragoman.inference.cpu._kernel",
            sources=[f"{ENGINE}/kernel.c"],
            depends=[
                f"{ENGINE}/{name}.h" for name in ("kernel", "layout", "products", "thread_pool")
            ],
            extra_compile_args=FLAGS.split(),
            extra_link_args=["-pthread"],
            optional=True,  # without a C compiler PyTorch can translate, more slowly
        )
    ]
)
