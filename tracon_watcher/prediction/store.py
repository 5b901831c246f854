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

"""Stored models: one sealed JSON document a file, or several in a list."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from tracon_watcher import errors
from tracon_watcher import document
from tracon_watcher.prediction import pairwise
from tracon_watcher.prediction import polynomial
from tracon_watcher.prediction import weighted_mean

AnyModel = pairwise.PairwiseModel | polynomial.PolynomialModel | weighted_mean.WeightedMeanModel
_FORMS = ('pairwise', 'polynomial', 'weighted_mean')


def from_content(content: Any, source: str, strict: bool = True) -> pairwise.PairwiseModel:
    """Build the production model that a parsed JSON object describes.

    :param strict: whether fields are refused that are not known, as a misspelt one in a file is,
        rather than passed over, as those that a later release has added to what it sends
    :raises tracon_watcher.errors.InvalidDocument: naming the offending field
    """
    fields = document.Fields(source, content)
    fields.string('schema', (document.MODEL_SCHEMA,))
    fields.string('form', ('pairwise',))
    return pairwise.PairwiseModel.from_fields(fields, content, strict)


def load(path: str | os.PathLike[str]) -> pairwise.PairwiseModel:
    """Read one production model from a JSON file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    return from_content(_content(path), os.fspath(path))


def load_any(path: str | os.PathLike[str]) -> AnyModel:
    """Read a production model, or one of the models of a single application.

    :raises tracon_watcher.errors.InvalidDocument: naming file, field and value
    """
    source, content = os.fspath(path), _content(path)
    fields = document.Fields(source, content)
    fields.string('schema', (document.MODEL_SCHEMA,))
    form = fields.string('form', _FORMS)
    if form == 'polynomial':
        return polynomial.PolynomialModel.from_fields(fields, content)
    if form == 'weighted_mean':
        return weighted_mean.WeightedMeanModel.from_fields(fields, content)
    return from_content(content, source)


def _content(path: str | os.PathLike[str]) -> Any:
    source = os.fspath(path)
    try:
        text = pathlib.Path(source).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidDocument(source, 'the file', str(error),
                                     'cannot be read; write it with `tracon model fit`') from None
    document.parse(text, source)
    return json.loads(text)


def save(model: AnyModel, path: str | os.PathLike[str]) -> None:
    """Write one model, atomically: a reader sees the old file or the new one."""
    target = pathlib.Path(path)
    scratch = target.with_name(f'.{target.name}.{os.getpid()}')
    scratch.write_text(json.dumps(model.to_document(), indent=1, allow_nan=False) + '\n',
                       encoding='utf-8')
    scratch.replace(target)
