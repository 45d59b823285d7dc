"""The tuner. The package can be called: `leverl.tune(study)` is the function of `leverl.api`.

Python binds a subpackage to its name in the parent as soon as anything below it is imported, which would hide the
public function of that name.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return import_module("leverl.api").tune(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
