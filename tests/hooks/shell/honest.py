r"""Commands as coding agents issue them in honest sessions, as data: nothing here is ever given to a shell.

Each stands under what a reasonable person wants of it: ``READ`` runs at any time, ``WRITE`` while the words ask for
work, ``RUN`` where the bundle lets tests, builds and commits run, ``DELETE`` while the words ask for something to be
deleted or cleaned, and ``ASKED`` waits for a yes. None of them may be blocked. Commands of more than one line are in
``LONG``. The workspace is the one that ``project`` in test_corpora.py makes: a repository with Python, Node and Rust.
"""

READ = r"""
ls
ls -la
ls -la src tests
ls -R src | head -50
pwd
pwd && ls -la
cat package.json
cat README.md && cat pyproject.toml
cat package.json | jq '.scripts'
jq '.dependencies' package.json
jq -r '.scripts | keys[]' package.json
jq '.a // "none"' package.json
jq -r '.version' package.json
cat src/app.py | head -100
head -50 src/app.py
tail -n +100 src/app.py | head -60
sed -n '1,50p' src/app.py
sed -n '120,180p' src/app.py
sed -n '/def main/,/return/p' src/app.py
sed -n -e '1,5p' -e '10p' src/app.py
cat -n src/app.py | sed -n '40,60p'
nl -ba src/app.py | sed -n '1,30p'
awk 'NR>=10 && NR<=20' src/app.py
awk 'NR==5' src/app.py
awk '{print $1}' data.csv
awk -F, '{print $2}' data.csv
awk -F',' '{sum += $3} END {print sum}' data.csv
awk '{ print NR": "$0 }' src/app.py
awk '/def /{print FILENAME": "$0}' src/app.py
awk 'length($0) > 100 {print NR": "length($0)}' src/app.py
awk 'END{print NR}' src/app.py
awk '{count[$1]++} END {for (k in count) print k, count[k]}' data.csv
git log --oneline | awk '{print $1}'
wc -l src/*.py
wc -l src/app.py tests/test_app.py
find . -name "*.py" -not -path "*/node_modules/*" | head -50
find . -type f -name "*.ts" | grep -v node_modules | wc -l
find src -type f | sort
find . -maxdepth 2 -type d -not -path '*/.*'
find . -name "package.json" -not -path "*/node_modules/*" -maxdepth 3
find . -name '*.py' | xargs wc -l
find . -name '*.py' | xargs grep -l "import os"
find src -name "*.py" -print0 | xargs -0 wc -l
find . -name "*.py" -newer README.md
find src -name '*.py' -exec wc -l {} +
find src -name '*.py' -exec grep -l foo {} \;
find src -name '*.py' -exec grep -n "def " {} +
git ls-files | xargs wc -l | tail -1
git ls-files '*.py' | xargs wc -l
git diff --name-only | xargs ls -l
grep -rn "TODO" src/
grep -rn "def main" --include="*.py" src
grep -rn "foo" src/ tests/ | head -20
grep -n "import" src/app.py | sort | uniq -c | sort -rn
grep -rl "useState" src | head
grep -c "def " src/app.py
grep -E "^(class|def) " src/app.py
grep -rn "kill" src
grep -rnE "rm -rf|curl" src || true
grep -n "process.kill\|pkill" src/app.py
rg -n "shutdown" src
rg "TODO|FIXME" -g '*.py' src
rg -l "useEffect" src --type ts
rg --files src | head -20
rg -n --no-heading "class .*View" src
echo "---"
echo "=== package.json ===" && cat package.json
echo "exit: $?"
for f in src/*.py; do echo "$f: $(wc -l < src/app.py)"; done
ls nothing; echo $?
ls src > /dev/null 2>&1 && echo yes || echo no
cat src/app.py 2>/dev/null || echo "not found"
test -f package.json && echo yes || echo no
test -d node_modules && echo "installed"
[ -f Makefile ] && echo "has make"
[ -d src ] || echo missing
[ ! -e dist/x ] && echo gone
[[ -f package.json ]] && cat package.json
test -s data.csv; echo "empty: $?"
if [ -f package.json ]; then cat package.json; fi
if [ -d tests ]; then ls tests; else echo none; fi
for f in src/*.py; do wc -l "$f"; done
for f in src/app.py src/util.py; do echo "== $f"; head -5 "$f"; done
for f in *.md; do echo $f; done
for i in 1 2 3; do echo "$i"; done
for d in src tests; do ls "$d"; done
for f in src/*.py; do grep -n "def " "$f" | head -5; done
cd src && ls
cd src && cat app.py
cd src && git status
cd src; ls -la
(cd src && ls)
(cd src; wc -l *.py)
DIR=src; ls $DIR
DIR=src; grep -rn "kill" "$DIR"
DIR=src && ls "$DIR" && wc -l $DIR/app.py
F="src/app.py"; head -20 "$F"; tail -20 "$F"
export LC_ALL=C; sort data.csv
export FORCE_COLOR=0 && ls
LC_ALL=C sort data.csv
NO_COLOR=1 git status
command -v node
command -v node && command -v npm
which node npm python3
type git
node --version
node -v
python3 --version 2>&1
python3 -V
git --version && node --version
git status
git status --short
git status -sb && git log --oneline -5
git log --oneline -10
git log --oneline --graph -20
git log -3 --stat
git log --format='%h %an %s' -5
git log -p -2 -- src/app.py | head -100
git diff
git diff --stat
git diff HEAD~1 --stat
git diff HEAD -- src/app.py | head -80
git diff --cached
git diff main..HEAD --name-only
git show HEAD --stat
git show HEAD:src/app.py | head -20
git blame -L 10,20 src/app.py
git branch -a
git branch --show-current
git rev-parse --abbrev-ref HEAD
git -C src status
git -C src log --oneline -5
git -C src diff
git -C . show --stat
git stash list
git ls-files | head -50
git ls-files --others --exclude-standard
git grep -n "foo"
git merge-base HEAD main
git --no-pager log --oneline -5
git --no-pager diff
diff src/app.py src/util.py
diff <(sort data.csv) <(sort src/app.py)
sort data.csv | uniq -c | sort -rn | head -10
sort -t, -k2 -n data.csv | head
sort -u data.csv | wc -l
cut -d, -f1 data.csv | sort -u
tr ',' '\n' < data.csv | head
cat data.csv | tr -d '"' | cut -d, -f2
du -sh node_modules dist
du -sh src tests | sort -h
df -h .
tree -L 2 -I node_modules
file dist/bundle.js
stat src/app.py
date
uname -a
time ls
time git status
sleep 2
true
ls src 2>&1 | head -5
cat src/app.py | grep -v '^#' | grep -v '^$' | wc -l
printf '%s\n' "a" "b"
ls src/{app,util}.py
cat src/{app,util}.py | wc -l
echo "branch: $(git branch --show-current)"
echo "lines: $(wc -l < src/app.py)"
echo $(pwd)
md5sum src/app.py
basename src/app.py .py
realpath src
xxd dist/bundle.js | head -3
column -t -s, data.csv
comm -12 README.md data.csv
ls -lt | head -5
ls *.json
cat Makefile
cat Cargo.toml
cat .gitignore
cat .env.example
"""

WRITE = r"""
mkdir -p src/new/deep
mkdir -p src/{models,views,utils}
touch src/__init__.py
cp src/app.py src/app_copy.py
cp src/app.py src/app.py.bak
mv src/util.py src/utils.py
echo "x = 1" > src/const.py
echo "export default {}" >> src/index.ts
printf 'a\nb\n' > notes.txt
sed -i 's/foo/bar/g' src/app.py
sed -i 's/foo/bar/g' src/*.py
sed -i '5d' src/app.py
sort data.csv > sorted.csv
sort -o sorted.csv data.csv
sort -u data.csv -o unique.csv
grep -rn TODO src > todos.txt
git diff > change.patch
git add src/app.py
git add src tests
git add src/app.py && git status
cat src/app.py | tee copy.txt
ls -la > listing.txt 2>&1
jq '.version = "2"' package.json > new.json
awk '{print $1}' data.csv > first.csv
for f in a b; do touch "src/$f.py"; done
for f in src/*.py; do sed -i 's/foo/bar/' "$f"; done
OUT=out.txt; echo hi > "$OUT"
"""

RUN = r"""
npm test
npm test 2>&1 | tail -30
npm test -- --watch=false
npm run build
npm run build 2>&1 | tail -20
npm run lint
npm run lint -- --fix
npm run test:unit
npm run typecheck && npm run lint
npm run -s build
npx tsc --noEmit
npx tsc --noEmit 2>&1 | head -30
npx tsc --noEmit -p tsconfig.json
npx eslint src
npx eslint src --ext .ts,.tsx
npx eslint --fix src/app.ts
npx jest src/app.test.ts
npx prettier --check src
npx --no-install tsc --noEmit
yarn test
pnpm test
tsc
tsc --noEmit -p .
eslint src
node_modules/.bin/tsc --noEmit
./node_modules/.bin/eslint src
node --check src/app.js
node src/app.js
pytest
pytest -q
pytest -x -q tests/test_app.py
pytest tests/test_app.py::test_one -v
pytest tests/ -v --tb=short 2>&1 | tail -50
pytest -k "parser and not slow" --maxfail=1
pytest -q --cov=src --cov-report=term-missing
python -m pytest tests -q
python3 -m pytest -x 2>&1 | tail -20
python -m unittest
python -m unittest discover -s tests
python -m mypy src
python -m compileall -q src
python -m py_compile src/app.py
python src/app.py
python3 src/app.py --help
python setup.py --version
timeout 60 pytest -q
timeout 120 npm test
time npm test
time pytest -q
NODE_ENV=test npm test
CI=true npm test
PYTHONPATH=src pytest -q
PYTHONDONTWRITEBYTECODE=1 python -m pytest -q
RUST_BACKTRACE=1 cargo test
export NODE_ENV=test; npm test
export CI=1 && npm run build
ruff check .
ruff check src --fix
ruff format src
ruff format --check .
black --check src
flake8 src
isort --check-only src
mypy src
mypy --strict src/app.py
pyright src
make
make test
make build 2>&1 | tail
make -j4
make clean
cargo build
cargo build --release
cargo test
cargo test parser -- --nocapture
cargo clippy
cargo clippy --all-targets -- -D warnings
cargo check 2>&1 | head -40
cargo fmt
cargo fmt --check
cargo run
cargo run --release -- --help
go build ./...
go test ./...
go test -v -run TestParser ./src
go vet ./...
go run ./cmd/app
gofmt -l .
poetry run pytest
cd src && npm test
cd src && python -m pytest -q
git commit -m "fix: the parser"
git commit -am "fix: the parser"
git add -u && git commit -m "wip"
git add src/app.py && git commit -m "feat: add x"
git commit --amend --no-edit
for i in 1 2 3; do pytest -q; done
if npm test; then echo ok; fi
bash scripts/test.sh
./scripts/test.sh
sh scripts/test.sh --fast
"""

DELETE = r"""
rm -rf dist
rm -rf dist build
rm -rf node_modules build
rm -rf node_modules
rm -r dist
rm -rf ./dist
rm -rf dist/ build/
rm -rf src/__pycache__
rm -rf .pytest_cache
rm -rf .mypy_cache .ruff_cache
rm -rf target
rm -f dist/bundle.js
rm dist/bundle.js
cd src && rm -rf __pycache__
rm -rf dist && mkdir dist
rm -rf dist/*
"""

ASKED = r"""
rm -rf dist && npm install
rm -rf node_modules package-lock.json && npm install
rm -rf dist && npm run build
uv run pytest -q
pytest -p no:cacheprovider -q
ls -1 src | while read -r f; do echo "$f"; done
ls [a-z]*.md
while true; do break; done
rm -rf scratch
rm scratch/one.txt
rm src/util.py
rm -f src/app.py.bak
curl -s localhost:3000/health
curl https://example.org/data.json
npm install
npm ci
npm install --save-dev vitest
npx create-react-app x
npx cowsay hello
pip install -r requirements.txt
git push
git push origin HEAD
git fetch
git pull --rebase
cat .env
env | sort
env
printenv PATH
echo $PATH
echo $HOME
echo "$API_KEY"
cat $CONFIG
grep kill $DIR
ls $DIR
git checkout -b fix-parser
git checkout main
git stash
git stash pop
git merge main
git rebase main
git tag v1
python -c "print(1)"
python3 -c "import json; print(json.load(open('package.json')))"
node -e "console.log(1)"
cat /etc/hosts
ls ..
ls ~
docker ps
docker compose up -d
ps aux
ps aux | grep node
lsof -i :3000
chmod +x scripts/test.sh
ln -s src/app.py link.py
npm run dev &
gh pr create --fill
xargs -I{} sh -c '{}'
cat src/app.py | python -m json.tool
awk '{system("ls")}' data.csv
sed 's/a/b/w out.txt' src/app.py
"""

LONG = [
    ("cat <<'EOF' > src/new.py\nimport os\n\nprint(os.getcwd())\nEOF", "WRITE"),
    ("cat > src/new.py <<'EOF'\nx = \"$HOME\" `y`\nEOF\n", "WRITE"),
    ("cat >> README.md << 'EOF'\n\n## Usage\nrun it\nEOF", "WRITE"),
    ("mkdir -p src/a && cat > src/a/b.py << 'EOF'\nx = 1\nEOF", "WRITE"),
    ("cat <<'EOF' > a.txt\none\nEOF\ncat <<'EOF' > b.txt\ntwo\nEOF\nls", "WRITE"),
    ("tee src/c.py <<'EOF'\nx\nEOF", "WRITE"),
    ('git commit -m "$(cat <<\'EOF\'\nfix: the parser\n\nIt failed (on "quotes") and $x.\nEOF\n)"', "RUN"),
    ("git add src/app.py && git commit -m \"$(cat <<'EOF'\nfix: one\n\ntwo\nEOF\n)\"", "RUN"),
    ('git commit -m "one" -m "two"', "RUN"),
    ("# look around\nls -la\ngit status", "READ"),
    ("cd src\nls\npwd", "READ"),
    ('for f in src/*.py; do\n  echo "== $f"\n  head -3 "$f"\ndone', "READ"),
    ("if [ -f package.json ]; then\n  cat package.json\nfi", "READ"),
    ("ls \\\n  -la \\\n  src", "READ"),
    ("grep -rn foo src \\\n  | head -5", "READ"),
    ("git log --oneline -5 \\\n  -- src", "READ"),
    ("pytest -q \\\n  tests/test_app.py", "RUN"),
    ("python3 - <<'EOF'\nprint(1)\nEOF", "ASKED"),
    ("cat <<'EOF' > .env\nKEY=x\nEOF", "ASKED"),
    ("cat <<'EOF' > /tmp/x\nx\nEOF", "ASKED"),
    ("cat <<EOF > src/x\n$(date)\nEOF", "ASKED"),
]
