# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The models that are in use: a directory of files, read again when it changes."""

from __future__ import annotations

import os
import pathlib
from typing import Callable, Mapping

from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.prediction import pairwise
from tracon_watcher.prediction import store

_RESPONSES = ('slowdown', 'iops_ratio')
_WITHOUT = 'hosts are judged by the law of queueing alone'


class ModelDirectory:
    """Keeps the models of a directory by host type.

    A file that cannot be used is reported and passed over; a host type of which one of the two
    models is missing has none. What could be read before is not kept beyond its file. Models that
    are the same as before remain the same objects, by which others know that they are.

    :param report: called with a kind and a text for each thing that is not as it should be
    """

    def __init__(self, path: str | os.PathLike[str], report: Callable[[str, str], None]) -> None:
        self._path = pathlib.Path(path)
        self._report = report
        self._seen: dict[pathlib.Path, tuple[int, int]] = {}
        self._texts: list[str] = []
        self._models: dict[str, assessment.Models] = {}

    def __call__(self) -> Mapping[str, assessment.Models]:
        """Return the models, reading them again when a file has come, gone or changed."""
        try:
            seen = {path: (found.st_mtime_ns, found.st_size) for path, found in (
                (path, path.stat()) for path in sorted(self._path.glob('*.json')))}
        except OSError as error:
            seen = {}
            self._texts = [f'{self._path}: {error.strerror}: {_WITHOUT}; make it readable, or '
                           'set [engine] models_directory']
        else:
            if seen != self._seen or not seen:
                self._texts = []
                self._models = self._read(list(seen))
        self._seen = seen
        for text in self._texts:
            self._report('models', text)
        return self._models

    def _read(self, paths: list[pathlib.Path]) -> dict[str, assessment.Models]:
        if not paths:
            self._texts.append(f'{self._path}: there is no model: {_WITHOUT}; write models there '
                               'with "tracon model fit"')
        found: dict[str, dict[str, tuple[pathlib.Path, pairwise.PairwiseModel]]] = {}
        for path in paths:
            try:
                model = store.load(path)
            except errors.InvalidDocument as error:
                self._texts.append(str(error))
                continue
            pair = found.setdefault(model.host_type, {})
            if model.response in pair:
                self._texts.append(
                    f'{path}: another {model.response} model of host type {model.host_type} is in '
                    f'{pair[model.response][0].name}, which is used; remove one of them')
            else:
                pair[model.response] = path, model
        models = {}
        for host_type, pair in found.items():
            missing = [name for name in _RESPONSES if name not in pair]
            if missing:
                self._texts.append(f'{self._path}: host type {host_type} has no {missing[0]} '
                                   f'model: {_WITHOUT}')
            else:
                made = assessment.Models(*(pair[name][1] for name in _RESPONSES))
                old = self._models.get(host_type)
                models[host_type] = (
                    made if old is None or _seals(old) != _seals(made) else old)
        return models


def _seals(models: assessment.Models) -> list[str]:
    return [model.to_document()['checksum'] for model in models]
