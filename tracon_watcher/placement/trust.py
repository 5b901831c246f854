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

"""How far models must be trusted for anything to be judged by them."""

from __future__ import annotations

from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray
from tracon_watcher.placement import assessment

#: Of host types whose models are trusted less, nothing is said.
LEAST_TRUST = 0.5


def distrusted(trust: FloatArray) -> BoolArray:
    """Return whose models are not trusted enough, of any shape.

    :param trust: from 0 to 1
    """
    return np.asarray(trust < LEAST_TRUST)


def left_alone(models: Mapping[str, assessment.Models],
               trust: Mapping[str, float]) -> frozenset[str]:
    """Return the types of hosts of which nothing is said, since their models have drifted.

    :param models: by host type, as well as ``trust``
    """
    return frozenset(models.keys() - believed(models, trust).keys())


def believed(models: Mapping[str, assessment.Models],
             trust: Mapping[str, float]) -> dict[str, assessment.Models]:
    """Return the models that are trusted enough; hosts of the other types are unknown without.

    :param models: by host type, as well as ``trust``, which is 1 for a type that is not named
    """
    return {name: one for name, one in models.items()
            if not distrusted(np.array(trust.get(name, 1.0)))}
