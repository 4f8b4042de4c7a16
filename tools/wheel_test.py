"""Build the package, install the wheel into an empty environment, and use it there as a newcomer would.

    python tools/wheel_test.py            # other packages are those of the environment that runs this script
    python tools/wheel_test.py --real     # all packages are installed, as pip resolves them from the wheel's metadata
    python tools/wheel_test.py --real --python python3.13

The checkout is out of reach of the tests: they run in a new folder, and the wheel is built from the source
distribution, which is built from a copy.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "MANIFEST.in",
    "constraints.txt",
    "src",
)
EXTRAS = "language,explorer"
TOPICS = {
    "kitchen": "butter flour oven bread salt pan sugar dough spoon onion",
    "sea": "boat wave coral harbour sail tide anchor reef gull storm",
    "music": "violin chord tempo melody drum choir sonata rhythm flute note",
    "law": "judge court appeal verdict clause lawyer trial statute jury oath",
}
SMALL = "--layers 1 --heads 2 --dim 16 --length 32 --vocab-size 180 --steps 20"
FEW = "--topics 4 --iterations 10 --documents 40 --bootstrap 20 --shuffles 20 --threshold 0.05"
STEPS = (  # a command, and what its output has to hold
    ("--version", ""),
    ("theory theorem2", "0.1080202"),
    ("train --steps 50 --device cpu --out runs/demo", "dev loss"),
    ("report runs/demo", "report.html"),
    ("reproduce figure7 --engine serial --out runs/paper", "1 reproduced"),
    (f"pretrain --corpus texts.txt {SMALL} --device cpu --out runs/model", "loss"),
    (f"probe runs/model --corpus texts.txt {FEW} --device cpu --engine serial --out runs/probe", "model"),
    ("show runs/demo", "done"),
    ("export runs/demo --to tensorboard", "Written to"),
    ("export runs/probe --to parquet", "rows"),
    ("export runs/probe --to hf", "Written to"),
    ("explore --help", "workspace"),
)


def build(home: Path) -> tuple[Path, Path]:
    """A source distribution, and the wheel that is built from it."""
    copy = home / "copy"
    copy.mkdir()
    for name in SOURCES:
        source = ROOT / name
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nbi", "*.nbc")
        shutil.copytree(source, copy / name, ignore=left_out) if source.is_dir() else shutil.copy(source, copy / name)
    made = home / "dist"
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", made, copy], check=True, stdout=-3)
    [source], [wheel] = made.glob("*.tar.gz"), made.glob("*.whl")
    return source, wheel


def files_of(wheel: Path) -> set[str]:
    """The files of the package in a wheel."""
    return {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("topicscope/")}


def environment(home: Path, wheel: Path, python: str | None) -> Path:
    """The command of the installed wheel. `python`: install everything for it; None: share what is installed here."""
    place = home / "environment"
    if python is None:
        venv.create(place, with_pip=False)
        [packages] = place.glob("lib/python*/site-packages")
        shared = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "shared.pth").write_text("\n".join(shared) + "\n")
        target, how = place / "bin" / "python", ["--no-deps", str(wheel)]
        pip = [sys.executable, "-m", "pip", "--python", str(target)]
    else:
        subprocess.run([python, "-m", "venv", place], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip"]
        how = ["-c", str(ROOT / "constraints.txt"), f"{wheel}[{EXTRAS}]"]
        # first and alone, so that the build of PyTorch is the pinned one
        install(pip, ["-c", str(ROOT / "constraints.txt"), "torch"])
    install(pip, how)
    return place / "bin" / "topicscope"


def install(pip: list[str], what: list[str]) -> None:
    subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", *what], check=True)


def cpu_seconds() -> float:
    """Of all processes that were started so far; on a busy machine it says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_texts(path: Path) -> None:
    draw, words = random.Random(0), [line.split() for line in TOPICS.values()]
    path.write_text("\n".join(" ".join(draw.choices(draw.choice(words), k=40)) for _ in range(300)))


def use(command: Path, place: Path) -> None:
    """All steps, in a folder that holds nothing else."""
    place.mkdir()
    write_texts(place / "texts.txt")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean |= {"HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    where = [str(command.with_name("python")), "-c", "import topicscope; print(topicscope.__file__)"]
    found = subprocess.run(where, cwd=place, env=clean, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_relative_to(command.parents[1]):
        sys.exit(f"the installed package is not the one that is used: {found}")
    for step, expected in STEPS:
        began, before = time.monotonic(), cpu_seconds()
        done = subprocess.run([command, *step.split()], cwd=place, env=clean, capture_output=True, text=True)
        said = " ".join((done.stdout + done.stderr).split())
        took = f"{time.monotonic() - began:6.1f} s ({cpu_seconds() - before:5.1f} s of CPU)"
        print(f"{took}  topicscope {step}", flush=True)
        if done.returncode or expected not in said:
            sys.exit(f"exit code {done.returncode}, expected 0 and {expected!r} in:\n{done.stdout}\n{done.stderr}")
    verdicts = json.loads((place / "runs" / "probe" / "results.json").read_text())["verdicts"]
    if [verdict["model"] for verdict in verdicts] != ["runs/model"]:
        sys.exit(f"verdicts on other models: {verdicts}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--real", action="store_true", help="install every dependency of the wheel")
    options.add_argument("--python", default=sys.executable, help="with --real: the interpreter to install for")
    given = options.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wheel-test-") as name:
        home = Path(name)
        source, wheel = build(home)
        print(f"{source.name}, {wheel.name}: {len(files_of(wheel))} files")
        command = environment(home, wheel, given.python if given.real else None)
        print(f"{time.monotonic() - began:6.1f} s  built and installed", flush=True)
        use(command, home / "elsewhere")
    print(f"passed in {time.monotonic() - began:.0f} s ({cpu_seconds():.0f} s of CPU)")


if __name__ == "__main__":
    main()
