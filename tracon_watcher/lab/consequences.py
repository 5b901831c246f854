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

"""What the production model makes of profiles, right ones and wrong ones."""

import typing

import numpy as np

from tracon_watcher.characteristics import COUNT
from tracon_watcher.models import fit
from tracon_watcher.models import naming
from tracon_watcher.models import points as measured
from tracon_watcher.models import validation

_ROUNDS = 30


class Predictor:
    """Predicted slowdowns of one host type.

    :param points: all that was measured of it
    """

    def __init__(self, points: measured.Points) -> None:
        self._fitted = fit.learnable(points, 'slowdown')
        self._model = fit.regressor(self._fitted, 'slowdown', measured.capacity(points))
        self._factory = fit.factory_like(self._model)
        self._without: dict[tuple[str, ...], typing.Any] = {}
        named = np.unique(points.target[(points.kind == 'solo')
                                        & ~naming.generated(points.target)])
        self._programs = np.array([points.target_alone[points.target == name][0]
                                   for name in named])

    def consequences(self, estimate: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
        """How wrong predicted slowdowns are for (n, 4) estimates instead of the truth.

        Mean relative errors: of each named program beside each of the n, and of each of the n
        beside each named program.
        """
        n, m = np.indices((len(truth), len(self._programs))).reshape(2, -1)
        right, wrong = ([self._model.predict(np.hstack([self._programs[m], profiles[n]])),
                         self._model.predict(np.hstack([profiles[n], self._programs[m]]))]
                        for profiles in (truth, estimate))
        neighbours, own = (float(np.abs(np.expm1(second - first)).mean())
                           for first, second in zip(right, wrong))
        return neighbours, own

    def fixed_point(self, seen: np.ndarray, other: np.ndarray, names: typing.Iterable[str],
                    ) -> np.ndarray:
        """Demands, (4,) and (4,), for which the model predicts that this is seen of two programs.

        As closed loops: d = seen × slowdown(d beside d of the other), and the other way round.

        :param names: of both; the model is one that never saw either of them
        """
        model = self._model_without(names)
        factors = np.ones(2)
        for _ in range(_ROUNDS):
            both = np.hstack([seen * factors[0], other * factors[1]])
            # Half a step each time, or else it swings.
            factors = (factors + np.exp(model.predict(
                np.array([both, np.roll(both, COUNT)])))) / 2
        return np.array([seen * factors[0], other * factors[1]])

    def _model_without(self, names: typing.Iterable[str]) -> typing.Any:
        key = tuple(sorted({name for name in names if not naming.is_generator(name)}))
        if key not in self._without:
            kept = ~(np.isin(self._fitted.target, key) | np.isin(self._fitted.background, key))
            self._without[key] = validation.fit_one(self._factory, self._fitted.take(kept),
                                                    'slowdown')
        return self._without[key]
