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

"""Makes stepwise.json: what statsmodels says of SYNTHETIC points.

Run in an environment that has statsmodels (0.15.0 made the file beside this script):

    python make_stepwise.py > stepwise.json

The search here is the plain one: every neighbour of a model is fitted again by statsmodels' OLS,
and its own AIC decides. statsmodels leaves the variance out of its count of parameters, which
shifts all its values by the same 2.
"""

import itertools
import json
import sys

import numpy as np
import statsmodels
import statsmodels.api


def fit(columns, response, active):
    design = statsmodels.api.add_constant(columns[:, active], has_constant='add')
    return statsmodels.api.OLS(response, design).fit()


def search(columns, response, active):
    best = fit(columns, response, active).aic
    while True:
        neighbours = [sorted([*active, j]) for j in range(columns.shape[1]) if j not in active]
        neighbours += [[i for i in active if i != j] for j in active]
        scores = [fit(columns, response, found).aic for found in neighbours]
        if min(scores) >= best - 1e-9:
            return active
        best = min(scores)
        active = neighbours[scores.index(best)]


def case(name, features, response, start):
    count = features.shape[1]
    pairs = itertools.combinations_with_replacement(range(count), 2)
    columns = np.column_stack([features] + [features[:, i] * features[:, j] for i, j in pairs])
    active = search(columns, response, list(range(columns.shape[1])) if start == 'full' else [])
    result = fit(columns, response, active)
    return {'name': name, 'start': start, 'features': features.tolist(),
            'response': response.tolist(), 'chosen': active, 'aic': result.aic,
            'log_likelihood': result.llf, 'residual': result.ssr,
            'parameters': result.params.tolist()}


def main():
    rng = np.random.default_rng(20)
    cases = []
    for name, points, count, noise in (('few', 30, 3, 0.3), ('many', 120, 4, 0.1)):
        features = rng.random((points, count)).round(3)
        response = (1 + features[:, 0] + 2 * features[:, 1] * features[:, 2]
                    + noise * rng.normal(size=points)).round(4)
        for start in ('empty', 'full'):
            cases.append(case(name, features, response, start))
    json.dump({'statsmodels': statsmodels.__version__, 'cases': cases}, sys.stdout)
    print()


if __name__ == '__main__':
    main()
