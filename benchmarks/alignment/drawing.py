"""Table and plot of the records of hansards.py."""

from __future__ import annotations

from typing import Any

Records = list[dict[str, Any]]

CHARTED = (
    "peers, as measured before",
    "peers, same run",
    "own models, no training",
    "no annotations",
    "features",
    "all features",
    "one way",
    "solvers",
)
COLORS = dict(zip(CHARTED, ("0.45", "0.25", "C1", "C4", "C0", "C2", "C5", "C3"), strict=True))
AIMS = {7.0: "must", 6.0: "aim"}


def table(records: Records) -> None:
    """Everything with an error rate or a speed, on standard error."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(title="Word alignment, Hansards")
    for name in ("", "AER %", "95 %", "train100", "dev37", "precision", "recall", "gap", "seconds", ""):
        grid.add_column(name, justify="left" if not name else "right")
    section = None
    for record in records:
        if record["section"] != section:
            section = record["section"]
            grid.add_section()
            grid.add_row(f"[bold]{section}")
        low, high = record.get("interval %", (None, None))
        rest = [f"{key} {record[key]}" for key in ("pairs/s", "peak MB", "MB", "refused", "error") if key in record]
        cells = [record.get("AER %", record.get("mean AER %"))]
        cells += [None if low is None else f"{low} to {high}"]
        cells += [record.get(key) for key in ("train100 %", "dev37 %", "precision %", "recall %", "largest gap")]
        cells += [record.get("training seconds", record.get("seconds")), "; ".join(rest)]
        grid.add_row(f"  {record['name']}", *("" if cell is None else str(cell) for cell in cells))
    Console(stderr=True, width=150).print(grid)


def draw(records: Records) -> Any:
    """Error rates of all configurations at the left, confidences and the learning curve at the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 13), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=[1.9, 1])
    _chart(figure.add_subplot(grid[:, 0]), records)
    calibration = next((r for r in records if r["section"] == "calibration" and "curve" in r), None)
    _thresholds(figure.add_subplot(grid[0, 1]), calibration, records)
    _reliability(figure.add_subplot(grid[1, 1]), calibration)
    _learning(figure.add_subplot(grid[2, 1]), records)
    return figure


def _chart(axes: Any, records: Records) -> None:
    at, ticks, names = 0.0, [], []
    rows = [r for r in records if r["section"] in CHARTED and ("AER %" in r or "train100 %" in r)]
    widest = max((max(r.get("AER %", 0), r.get("dev37 %", 0)) for r in rows), default=10.0)
    right = min(widest, 20.0) + 1.5
    for section in CHARTED:
        inside = [r for r in rows if r["section"] == section]
        if not inside:
            continue
        at += 1.0
        axes.text(0, at, section, fontweight="bold", color=COLORS[section], va="center")
        for record in inside:
            at += 1.0
            ticks.append(at)
            names.append(record["name"])
            for key, marker in (("train100 %", "|"), ("dev37 %", "x")):
                if key in record and record[key] <= right:
                    axes.plot(record[key], at, marker, color=COLORS[section], ms=6, alpha=0.6)
            if "AER %" in record and record["AER %"] <= right:
                low, high = record["interval %"]
                axes.plot([low, min(high, right)], [at, at], color=COLORS[section], lw=2, alpha=0.4)
                axes.plot(record["AER %"], at, "o", color=COLORS[section], ms=6)
            elif "AER %" in record:
                axes.plot(right - 0.3, at, ">", color=COLORS[section], ms=7)
            seconds = record.get("training seconds", record.get("seconds"))
            label = f"{record['AER %']:.1f}" if "AER %" in record else ""
            cpu = record["CPU seconds"]
            time = f"{seconds:.0f} s" if seconds else f"{cpu:.0f} s CPU" if cpu else ""
            axes.text(right + 0.2, at, label, va="center", ha="left", fontsize=9, fontweight="bold")
            axes.text(right + 3.6, at, time, va="center", ha="right", fontsize=9)
    for aim, word in AIMS.items():
        axes.axvline(aim, color="0.3", lw=1, ls="--" if word == "must" else ":")
        axes.text(aim, -0.6, f"{word} {aim:g}", ha="left" if word == "must" else "right", va="bottom", fontsize=9)
    axes.set(yticks=ticks, yticklabels=names, ylim=(at + 0.8, -0.5), xlim=(0, right))
    axes.set_xlabel("alignment error rate, %     ● all 137 pairs with 95% interval     | train100     × dev37")
    axes.set_title("AER and seconds of every configuration", pad=18)
    axes.grid(axis="x", alpha=0.3)
    axes.tick_params(axis="y", length=0, labelsize=9)


def _thresholds(axes: Any, calibration: dict[str, Any] | None, records: Records) -> None:
    axes.set(title="Links by threshold of confidence, out of fold", xlabel="recall of sure links, %")
    axes.set_ylabel("precision, %")
    axes.grid(alpha=0.3)
    if calibration is None:
        return
    curve = calibration["curve"]
    axes.plot([p["recall %"] for p in curve], [p["precision %"] for p in curve], "o-", color="C2", ms=3)
    for point in curve:
        if point["threshold"] in (0.3, 0.5, 0.7, 0.9, 0.99):
            axes.annotate(
                f"{point['threshold']:g}", (point["recall %"], point["precision %"]), (4, 4), fontsize=8,
                textcoords="offset points",
            )  # fmt: skip
    for section, name, marker in (
        ("all features", "settings chosen inside", "*"),
        ("own models, no training", "HMM, intersection", "s"),
        ("own models, no training", "HMM, grow-diag-final-and", "^"),
        ("no annotations", None, "D"),
    ):
        for record in records:
            if record["section"] == section and name in (None, record["name"]) and "AER %" in record:
                label = {"*": "best alignment"}.get(marker, record["name"])
                axes.plot(
                    record["recall %"],
                    record["precision %"],
                    marker,
                    label=label,
                    color=COLORS[section],
                    ms=13 if marker == "*" else 9,
                    mec="w",
                )
    axes.set_ylim(60, 102)
    axes.legend(fontsize=8, loc="lower left")


def _reliability(axes: Any, calibration: dict[str, Any] | None) -> None:
    axes.set(title="Calibration of confidences, out of fold", xlabel="mean confidence, %")
    axes.set_ylabel("links that annotators call possible, %")
    axes.grid(alpha=0.3)
    if calibration is None:
        return
    bins = [b for b in calibration["bins"] if b["links"]]
    axes.plot([0, 100], [0, 100], color="0.6", lw=1)
    axes.plot([b["confidence %"] for b in bins], [b["possible %"] for b in bins], "o-", color="C2")
    for one in bins:
        axes.annotate(
            f"{one['links']:,}", (one["confidence %"], one["possible %"]), (6, -10), fontsize=8,
            textcoords="offset points",
        )  # fmt: skip
    axes.text(
        0.03, 0.95, f"expected calibration error\nof predicted links {calibration['error of predicted links %']} %",
        transform=axes.transAxes, va="top", fontsize=9,
    )  # fmt: skip


def _learning(axes: Any, records: Records) -> None:
    axes.set(title="Annotated pairs needed", xlabel="annotated pairs", ylabel="AER, %")
    axes.grid(alpha=0.3)
    rows = [r for r in records if r["section"] == "learning curve" and "pairs" in r]
    for row in rows:
        axes.plot([row["pairs"]] * len(row["AER % of each draw"]), row["AER % of each draw"], ".", color="0.6")
    axes.plot([r["pairs"] for r in rows], [r["mean AER %"] for r in rows], "o-", color="C2", label="mean of draws")
    for record in records:
        if record["section"] == "no annotations" and "AER %" in record:
            axes.axhline(record["AER %"], color=COLORS["no annotations"], lw=1, ls="--", label=record["name"])
            break
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
