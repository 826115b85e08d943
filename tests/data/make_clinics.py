"""Write clinics.csv, a made-up table of four clinics: `python -m tests.data.make_clinics`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

PATH = Path(__file__).with_name("clinics.csv")
SITES = {"Bergen": (48.0, 0.20), "Gdansk": (60.0, 0.45), "Porto": (37.0, 0.30), "Tartu": (53.0, 0.10)}
PERSONS_PER_SITE = 100


def make_clinics(seed: int = 20_240_501) -> pd.DataFrame:
    """Return about 800 visits; `y` follows a logistic model of age, bmi, blood pressure and smoking."""
    rng = np.random.default_rng(seed)
    names = np.repeat(list(SITES), PERSONS_PER_SITE)
    mean_age, smoking = np.repeat(np.array(list(SITES.values())), PERSONS_PER_SITE, axis=0).T
    persons = names.size
    age = np.clip(rng.normal(mean_age, 12.0), 18, 95)
    bmi = np.clip(rng.normal(24.0 + (age - 18) / 16, 4.0), 15, 50)
    smokes = rng.random(persons) < smoking
    visits = np.repeat(np.arange(persons), rng.integers(1, 4, size=persons))
    pressure = rng.normal(95 + 0.6 * age[visits] + 0.6 * (bmi[visits] - 24), 9.0)
    risk = (
        0.08 * (age[visits] - 50)
        + 0.12 * (bmi[visits] - 26)
        + 0.04 * (pressure - 125)
        + 1.6 * smokes[visits]
        - 0.4
    )
    ill = rng.random(visits.size) < 1 / (1 + np.exp(-risk))
    frame = pd.DataFrame(
        {
            "site": names[visits],
            "patient": [f"P{1000 + person}" for person in visits],
            "age": age[visits].round().astype(int),
            "bmi": bmi[visits].round(1),
            "blood_pressure": pressure.round().astype(int),
            "smoker": np.where(smokes, "yes", "no")[visits],
            "y": ill.astype(int),
        }
    )
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


if __name__ == "__main__":
    make_clinics().to_csv(PATH, index=False)
