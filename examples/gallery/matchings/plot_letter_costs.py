"""
An edit distance that knows which letters are confused
======================================================

Levenshtein's distance charges every substitution the same. ``mm.EditSVM`` learns from
aligned pairs what each edit is worth, and its ``distance`` finds names in lists despite
other spellings.
"""

# %%
# Names are made of syllables; clerks who only *hear* a name write some letters in
# another way. Letters are replaced one by one or dropped, so the alignment of a name
# and what was written is known.

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

rng = np.random.default_rng(0)
ALIKE = "ck bp dt vw sz iy mn eo"
SOUNDS = {a: b for pair in ALIKE.split() for a, b in (pair, pair[::-1])}


def name():
    return "".join(
        rng.choice(list("bcdfgklmnprstvwz")) + rng.choice(list("aeiouy"))
        for _ in range(rng.integers(2, 5))
    )


def written(text):
    """A name as it was heard, and which positions belong together."""
    letters, links = [], []
    for at, letter in enumerate(text):
        if rng.random() < 0.04:
            continue  # not heard
        links.append((at, len(letters)))
        heard = SOUNDS.get(letter) if rng.random() < 0.35 else None
        letters.append(
            heard or (rng.choice(list("aeioudlnrst")) if rng.random() < 0.04 else letter)
        )
    return "".join(letters), np.array(links).reshape(-1, 2)


known = [name() for _ in range(400)]
X, y = zip(
    *(((text, other), links) for text in known for other, links in [written(text)]), strict=True
)
model = mm.EditSVM(gaps="linear", symmetric=True, C=1.0, tol=0.01, random_state=0).fit(
    list(X), list(y)
)
print(model.solution_.certificate)

# %%
# New names, and what was written for each. Which name of the list is nearest?

persons = sorted({name() for _ in range(400)})
typed = [written(person)[0] for person in persons]
distances = {
    "Levenshtein": mm.EditModel.levenshtein().distances(typed, persons),
    "learned": model.distances(typed, persons),
}
first = {
    label: np.mean(table.argmin(axis=1) == np.arange(len(persons)))
    for label, table in distances.items()
}
print({label: f"{share:.0%} of the names found at once" for label, share in first.items()})

# %%
# Above: the learned distance of single letters, with letters that sound alike side by
# side. Below: a name that only the learned distance finds.

letters = "".join(ALIKE.split()) + "afglru"
table = model.distances(list(letters), list(letters))
figure, (upper, lower) = plt.subplots(
    2, 1, figsize=(6.0, 8.2), layout="constrained", height_ratios=[2, 1]
)
picture = upper.imshow(np.where(np.eye(len(letters)) > 0, np.nan, table), cmap="viridis")
upper.set_xticks(range(len(letters)), letters)
upper.set_yticks(range(len(letters)), letters)
upper.tick_params(length=0)
upper.set_title("Letters that sound alike are near each other")
figure.colorbar(picture, ax=upper, label="learned distance of two letters", shrink=0.9)

lost = [
    i
    for i in range(len(persons))
    if distances["learned"][i].argmin() == i
    and (distances["Levenshtein"][i] < distances["Levenshtein"][i, i]).sum() > 2
]
at = lost[0]
rivals = np.argsort(distances["Levenshtein"][at], kind="stable")[:3].tolist()
for row, rival in enumerate([at, *rivals]):
    for shift, (label, color) in zip(
        (-0.19, 0.19), (("Levenshtein", "0.6"), ("learned", "#0072B2")), strict=True
    ):
        length = distances[label][at, rival] / distances[label][at, at]
        lower.barh(row + shift, length, height=0.36, color=color, label=label if row == 0 else None)
lower.set_yticks(
    range(1 + len(rivals)), [f"{persons[at]} (right)", *(persons[rival] for rival in rivals)]
)
lower.invert_yaxis()
lower.set_xlabel("distance / that of the right name")
lower.set_title(f"Who is “{typed[at]}”?")
lower.legend(loc="upper right", fontsize=9, handlelength=1)
lower.set_xlim(right=2.5)
lower.spines[["top", "right"]].set_visible(False)
shares = " and ".join(f"{label} {share:.0%}" for label, share in first.items())
figure.suptitle(f"Nearest of {len(persons)} names is the right one:\n{shares}")
plt.show()
