"""Programs: the listed ones, with the options under which each is harmless, and those that never are.

A program is listed with what GNU and BSD have in common or only one of them has; an option that means something else
elsewhere is left out. What a pager, an editor, a configuration or a plug-in could run is left out, too.
"""

from __future__ import annotations

from typing import Final

from phylactery_hooks.shell.options import Grammar, Operands, grammar

_GREP: Final = grammar(
    "-n -i -v -l -L -c -o -w -x -E -F -G -P -h -H -s -q -a -I -r -z -Z -A= -B= -C= -m= -e= -f< --line-number "
    "--ignore-case --invert-match --files-with-matches --files-without-match --count --only-matching --word-regexp "
    "--line-regexp --extended-regexp --fixed-strings --basic-regexp --perl-regexp --no-filename --with-filename "
    "--no-messages --quiet --silent --text --recursive --null --after-context= --before-context= --context? "
    "--max-count= --regexp= --file< --include= --exclude= --exclude-dir= --color? --colour? --no-ignore-case",
    Operands.SEARCHED,
    digits=True,
)

PROGRAMS: Final[dict[str, Grammar]] = {
    "ls": grammar(
        "-l -a -A -h -R -t -r -S -d -1 -F -p -i -s -n -o -g -G -k -m -q -u -c -x -C -X -B -L -H --all --almost-all "
        "--human-readable --recursive --reverse --directory --size --classify? --color? --group-directories-first "
        "--full-time --inode --no-group --sort= --time= --time-style= --si",
        Operands.LISTED,
    ),
    "cat": grammar(
        "-n -b -s -A -e -E -t -T -v -u --number --number-nonblank --squeeze-blank --show-all --show-ends "
        "--show-tabs --show-nonprinting"
    ),
    "head": grammar("-n= -c= -q -v -z --lines= --bytes= --quiet --verbose", digits=True),
    "tail": grammar("-n= -c= -q -v -z -r --lines= --bytes= --quiet --verbose", digits=True),
    "wc": grammar("-l -c -w -m -L --lines --bytes --words --chars --max-line-length"),
    "sort": grammar(
        "-n -r -u -f -b -d -g -h -i -M -V -R -s -z -c -C -k= -t= -o> --output> --numeric-sort --reverse --unique "
        "--ignore-case "
        "--human-numeric-sort --version-sort --stable --key= --field-separator= --check? --zero-terminated"
    ),
    "uniq": grammar(
        "-c -d -u -i -D -z -f= -s= -w= --count --repeated --unique --ignore-case --skip-fields= --skip-chars=",
        at_most=1,
    ),
    "cut": grammar(
        "-b= -c= -d= -f= -s -z -n --bytes= --characters= --delimiter= --fields= --only-delimited --complement "
        "--output-delimiter="
    ),
    "tr": grammar("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1", Operands.TEXT, at_most=2),
    "nl": grammar("-b= -n= -w= -s= -v= -i="),
    "tac": grammar("-b -r -s="),
    "rev": grammar(""),
    "paste": grammar("-d= -s -z --delimiters= --serial"),
    "comm": grammar("-1 -2 -3 -i -z --check-order --nocheck-order --total", at_most=2),
    "join": grammar("-1= -2= -a= -e= -i -o= -t= -v= -z", at_most=2),
    "fold": grammar("-b -s -w= --width= --spaces --bytes"),
    "expand": grammar("-t= -i --tabs= --initial"),
    "column": grammar("-t -s= -c= -x -n -e -N= -o= -R= --table --separator= --output-separator="),
    "diff": grammar(
        "-u -U= -c -C= -q -s -y -i -w -b -B -a -N -W= -E -Z -d -p -x= -e -n --unified? --context? --brief "
        "--report-identical-files --side-by-side --ignore-case --ignore-all-space --ignore-space-change "
        "--ignore-blank-lines --text --new-file --width= --exclude= --color? --suppress-common-lines "
        "--strip-trailing-cr --label= --normal --minimal",
        at_most=2,
    ),
    "cmp": grammar("-b -l -s -n= -i= --print-bytes --verbose --silent --quiet --bytes=", at_most=2),
    "stat": grammar("-c= -f -L -t -x -s -n --format= --printf= --dereference --file-system --terse", Operands.LISTED),
    "file": grammar("-b -i -L -h -I --brief --mime --mime-type --mime-encoding --dereference", Operands.LISTED),
    "du": grammar(
        "-s -h -a -c -k -m -b -d= -x -S -L -P -0 --summarize --human-readable --all --total --bytes --max-depth= "
        "--apparent-size --exclude= --one-file-system",
        Operands.LISTED,
    ),
    "df": grammar("-h -H -k -T -i -a -l -P --human-readable --print-type --inodes --total", Operands.LISTED),
    "tree": grammar(
        "-a -d -f -h -i -p -s -u -g -D -F -C -n -r -t -v -x -L= -I= -P= --dirsfirst --noreport --du --si --prune "
        "--gitignore --matchdirs --ignore-case",
        Operands.LISTED,
        bundles=False,
    ),
    "readlink": grammar("-f -e -m -n -q -v -z --canonicalize --no-newline", Operands.LISTED),
    "realpath": grammar("-e -m -L -P -q -s -z --relative-to= --relative-base=", Operands.LISTED),
    "basename": grammar("-a -s= -z --multiple --suffix= --zero", Operands.TEXT),
    "dirname": grammar("-z --zero", Operands.TEXT),
    "pwd": grammar("-L -P", Operands.NONE),
    "true": grammar("", Operands.TEXT),
    "false": grammar("", Operands.TEXT),
    "whoami": grammar("", Operands.NONE),
    "id": grammar("-u -g -G -n -r", Operands.NONE),
    "groups": grammar("", Operands.NONE),
    "uname": grammar("-a -s -n -r -v -m -p -i -o --all", Operands.NONE),
    "hostname": grammar("-s -f -d -i -I", Operands.NONE),
    "arch": grammar("", Operands.NONE),
    "nproc": grammar("--all --ignore=", Operands.NONE),
    "uptime": grammar("-p -s", Operands.NONE),
    "which": grammar("-a -s", Operands.TEXT),
    "type": grammar("-a -t -p -P", Operands.TEXT),
    "sleep": grammar("", Operands.TEXT, at_most=1),
    "seq": grammar("-w -s= -f=", Operands.TEXT, at_most=3),
    "date": grammar("-u -R -I? --utc --iso-8601? --rfc-3339= --rfc-email -d=", Operands.TEXT, at_most=1),
    "cksum": grammar(""),
    "md5sum": grammar("-b -t -z --binary --text --tag"),
    "sha1sum": grammar("-b -t -z --binary --text --tag"),
    "sha256sum": grammar("-b -t -z --binary --text --tag"),
    "sha512sum": grammar("-b -t -z --binary --text --tag"),
    "xxd": grammar("-a -b -c= -g= -l= -s= -p -u -i -e", at_most=1, bundles=False),
    "hexdump": grammar("-C -b -c -d -o -x -v -n= -s="),
    "od": grammar("-A= -t= -N= -j= -w? -c -x -v -b -d -o -a", at_most=1),
    "strings": grammar("-a -n= -t= -o -e= --all --bytes= --radix=", digits=True),
    "base64": grammar("-d -D -w= -i --decode --wrap= --ignore-garbage", at_most=1),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": grammar(
        "-n -N -i -S -s -v -w -x -l -c -o -F -P -U -H -I -h -q -a -p -. -u -0 -A= -B= -C= -e= -f< -g= -t= -T= -m= "
        "-M= -d= -r= -j= -E= --line-number --no-line-number --ignore-case --smart-case --case-sensitive --invert-match "
        "--word-regexp --line-regexp --files-with-matches --files-without-match --count --count-matches "
        "--only-matching --fixed-strings --pcre2 --multiline --multiline-dotall --with-filename --no-filename --quiet "
        "--text --pretty --hidden --no-ignore --no-ignore-vcs --unrestricted --null --after-context= "
        "--before-context= --context= --regexp= --file< --glob= --iglob= --type= --type-not= --type-list --max-count= "
        "--max-columns= --max-depth= --replace= --sort= --sortr= --color= --colors= --heading --no-heading --column "
        "--files --stats --json --trim --vimgrep --threads= --no-messages --no-config --encoding= --passthru",
        Operands.SEARCHED,
    ),
    "mkdir": grammar("-p -v --parents --verbose", Operands.WRITTEN),
    "touch": grammar("-a -c -m --no-create", Operands.WRITTEN),
    "tee": grammar("-a --append", Operands.WRITTEN),
}
"""Programs whose operands and options say all that they do."""

_LOG: Final = (
    "-n= -p -u -s -i -E -F -P -z -S= -G= -U? -w -b -c -m -q --oneline --graph --decorate? --no-decorate "
    "--stat? --shortstat "
    "--numstat --summary --name-only --name-status --patch --no-patch --pretty? --format? --all --branches? --tags? "
    "--remotes? --merges --no-merges --first-parent --follow --reverse --abbrev-commit --no-abbrev-commit --abbrev? "
    "--date= --since= --after= --until= --before= --author= --committer= --grep= --invert-grep --all-match "
    "--max-count= --skip= --cached --staged --merge-base --word-diff? --word-diff-regex= --color? --no-color "
    "--color-words? --color-moved? --check --diff-filter= --find-renames? --find-copies? --no-renames -M? -C? "
    "--minimal --patience --histogram --diff-algorithm= --unified? --function-context -W --ignore-all-space "
    "--ignore-space-change --ignore-blank-lines --ignore-space-at-eol --exit-code --quiet -R --relative? --text -a "
    "--no-ext-diff --no-textconv --full-index --binary --raw --topo-order --date-order --author-date-order "
    "--left-right --cherry-pick --cherry-mark --cherry --boundary --dirstat? --compact-summary --no-prefix "
    "--submodule? --ignore-submodules? --pickaxe-all --pickaxe-regex --source --simplify-by-decoration --no-notes "
    "--full-history --ancestry-path --no-mailmap --inter-hunk-context="
)

GIT: Final[dict[str, Grammar]] = {
    "status": grammar(
        "-s -b -v -z -u? --short --branch --porcelain? --long --show-stash --untracked-files? --ignored? --no-renames "
        "--ahead-behind --no-ahead-behind --column? --no-column --verbose",
        Operands.LISTED,
    ),
    "log": grammar(_LOG, digits=True, bundles=False),
    "show": grammar(_LOG, digits=True, bundles=False),
    "diff": grammar(_LOG, digits=True, bundles=False),
    "whatchanged": grammar(_LOG, digits=True, bundles=False),
    "shortlog": grammar("-s -n -e -c --summary --numbered --email --since= --until= --no-merges --all"),
    "blame": grammar(
        "-L= -w -M -C -l -t -e -s -p -c --line-porcelain --porcelain --date= --show-email --root --since="
    ),
    "branch": grammar(
        "-a -r -v -vv --all --remotes --list --show-current --verbose --no-color --color? --sort= --format= "
        "--contains= "
        "--no-contains= --merged? --no-merged? --points-at=",
        Operands.NONE,
    ),
    "tag": grammar("-l -n? --list --sort= --format= --contains= --points-at=", Operands.TEXT),
    "remote": grammar("", Operands.NONE),
    "ls-files": grammar(
        "-c -d -m -o -s -t -u -v -z --cached --deleted --modified --others --stage --exclude-standard --full-name "
        "--error-unmatch --eol --unmerged",
        Operands.LISTED,
    ),
    "ls-tree": grammar("-r -t -d -l -z --name-only --name-status --full-tree --full-name --long --abbrev?"),
    "rev-parse": grammar(
        "--short? --abbrev-ref? --show-toplevel --git-dir --git-common-dir --is-inside-work-tree --is-bare-repository "
        "--show-prefix --show-cdup --verify --symbolic-full-name --quiet -q",
        Operands.TEXT,
    ),
    "rev-list": grammar(
        "-n= --count --all --max-count= --since= --until= --left-right --no-merges --merges --first-parent --reverse "
        "--oneline --abbrev-commit --max-parents? --min-parents?",
        digits=True,
        bundles=False,
    ),
    "describe": grammar(
        "--tags --all --always --long --dirty? --abbrev? --match= --exact-match --contains", Operands.TEXT
    ),
    "merge-base": grammar("-a --all --is-ancestor --fork-point --octopus", Operands.TEXT),
    "name-rev": grammar("--tags --name-only --always", Operands.TEXT),
    "cat-file": grammar("-t -s -e -p", at_most=1),
    "show-ref": grammar("--heads --tags --branches -s --hash? --verify -q", Operands.TEXT),
    "for-each-ref": grammar("--count= --sort= --format= --merged? --contains= --points-at=", Operands.TEXT),
    "grep": grammar(
        "-n -i -v -l -L -c -o -w -E -F -G -P -h -H -q -a -I -p -W -z -A= -B= -C= -e= -m= --line-number --ignore-case "
        "--invert-match --files-with-matches --name-only --files-without-match --count --only-matching --word-regexp "
        "--extended-regexp --fixed-strings --perl-regexp --cached --heading --break --show-function --column "
        "--max-count= --and --or --not --color? --no-color --full-name --all-match --max-depth=",
        Operands.SEARCHED,
        digits=True,
    ),
    "reflog": grammar("-n= --date= --oneline --no-color", Operands.NONE, digits=True),
    "version": grammar("", Operands.NONE),
    "check-ignore": grammar("-v -q -n --verbose --quiet --non-matching", Operands.LISTED),
    "count-objects": grammar("-v -H --verbose --human-readable", Operands.NONE),
    "add": grammar("-A -u -v -n --all --update --verbose --dry-run --intent-to-add -N", Operands.WRITTEN),
}
"""Subcommands of Git that read, and ``add``."""

GIT_NESTED: Final[dict[tuple[str, str], Grammar]] = {
    ("stash", "list"): grammar(_LOG, Operands.TEXT, bundles=False),
    ("stash", "show"): grammar(_LOG, Operands.TEXT, bundles=False),
    ("worktree", "list"): grammar("--porcelain -v", Operands.NONE),
    ("submodule", "status"): grammar("--cached --recursive", Operands.NONE),
}

_NAMES: Final = Operands.TEXT
RUNNERS: Final[dict[tuple[str, ...], Grammar]] = {
    ("pytest",): grammar(
        "-q -v -vv -vvv -qq -x -s -l -k= -m= -n= -r= --tb= --lf --ff --nf --sw --last-failed --failed-first "
        "--exitfirst "
        "--maxfail= --durations= --no-header --no-summary --collect-only --co --quiet --verbose --showlocals --color= "
        "--timeout= --import-mode= --strict-markers --no-cov --cov? --cov-report= --disable-warnings --dist= "
        "--stepwise",
        Operands.LISTED,
    ),
    ("ruff", "check"): grammar(
        "-q -v --quiet --diff --fix --select= --ignore= --statistics --output-format= --no-cache --preview",
        Operands.LISTED,
    ),
    ("ruff", "format"): grammar("-q -v --quiet --check --diff --no-cache --preview", Operands.LISTED),
    ("mypy",): grammar(
        "-p= -m= --strict --pretty --no-error-summary --show-error-codes --ignore-missing-imports", Operands.LISTED
    ),
    ("npm", "test"): grammar("-s --silent", Operands.NONE),
    ("npm", "run"): grammar("-s --silent --if-present", _NAMES, at_most=1),
    ("jest",): grammar(
        "-t= -i --coverage --ci --silent --verbose --runInBand --bail --passWithNoTests --watchAll= --maxWorkers= "
        "--testNamePattern= --findRelatedTests --no-coverage -u --updateSnapshot",
        Operands.LISTED,
    ),
    ("vitest",): grammar("-t= --run --coverage --silent --passWithNoTests", Operands.LISTED),
    ("eslint",): grammar("--fix --quiet --max-warnings= --ext= --cache --no-cache --color", Operands.LISTED),
    ("prettier",): grammar("-c -l -w --check --list-different --write --log-level=", Operands.LISTED),
    ("black",): grammar("-q --check --diff --quiet --fast --line-length= -l=", Operands.LISTED),
    ("flake8",): grammar("-q -v --max-line-length= --select= --ignore= --statistics --count", Operands.LISTED),
    ("isort",): grammar("-q -c --check-only --check --diff --profile=", Operands.LISTED),
    ("pyright",): grammar("--stats --outputjson --warnings", Operands.LISTED),
    ("gofmt",): grammar("-l -d -s -w -e", Operands.LISTED),
    ("go", "run"): grammar("-race", Operands.LISTED, at_most=1),
    ("cargo", "run"): grammar("-q --quiet --release --bin= -p= --package=", Operands.NONE),
    ("pnpm", "test"): grammar("", Operands.NONE),
    ("yarn", "test"): grammar("", Operands.NONE),
    ("tsc",): grammar("-p< -b --noEmit --pretty --project< --build --incremental --strict", Operands.LISTED),
    ("make",): grammar("-s -k -n -j? --silent --keep-going --dry-run", _NAMES),
    ("cargo", "test"): grammar(
        "-q --quiet --release --all --workspace --lib --no-run --all-features --offline -p= --package=", _NAMES
    ),
    ("cargo", "check"): grammar(
        "-q --quiet --release --all --workspace --all-targets --all-features --offline -p= --package=", Operands.NONE
    ),
    ("cargo", "build"): grammar(
        "-q --quiet --release --all --workspace --all-targets --all-features --offline -p= --package=", Operands.NONE
    ),
    ("cargo", "clippy"): grammar(
        "-q --quiet --release --all --workspace --all-targets --all-features --offline -p= --package=", Operands.NONE
    ),
    ("cargo", "fmt"): grammar("--check --all", Operands.NONE),
    ("go", "test"): grammar("-v -race -short -cover -run= -count= -timeout=", Operands.LISTED),
    ("go", "build"): grammar("-v -race", Operands.LISTED),
    ("go", "vet"): grammar("", Operands.LISTED),
    ("tox",): grammar("-q -e=", Operands.NONE),
    ("unittest",): grammar("-q -v -f -b -k= -s< -p= --quiet --verbose --failfast --buffer", _NAMES),
    ("compileall",): grammar("-q -f -j=", Operands.LISTED),
    ("py_compile",): grammar("", Operands.LISTED),
    ("git", "commit"): grammar(
        "-m= -a -q -v --message= --all --amend --no-edit --allow-empty --quiet", Operands.LISTED
    ),
}
"""Programs that run code of the workspace: tests, linters with plug-ins, builds, and a commit with its hooks."""

PASSING: Final = frozenset([("npm", "test"), ("npm", "run"), ("cargo", "test"), ("cargo", "clippy"), ("cargo", "run")])
"""Runners that pass what stands after ``--`` on to the program that they start."""
MODULES: Final = frozenset("unittest compileall py_compile".split())
"""Modules of Python that run or compile code of the workspace."""
INTERPRETERS: Final = frozenset("python python3 node bash sh".split())
FED: Final = {
    **dict.fromkeys("ls basename dirname du".split(), False),
    **dict.fromkeys("cat head tail grep egrep fgrep nl wc md5sum sha1sum sha256sum cksum".split(), True),
}
"""Programs that may be given names of files by find or xargs, and whether they tell anything of what is in them."""

VERSIONS: Final = {
    "--version": frozenset("python python3 node git gcc clang make java rg jq".split()),
    "-V": frozenset("python python3".split()),
    "-v": frozenset(["node"]),
}
"""Programs that answer an option with their version without doing anything else."""
VERSIONS_RUN: Final = frozenset("npm pnpm yarn go cargo rustc ruff mypy pytest uv pip tsc dotnet".split())
"""Programs that may load code of the workspace before they answer it."""

NETWORK: Final = frozenset(
    (
        "curl wget ssh scp sftp rsync ftp lftp telnet nc ncat netcat socat ping ping6 traceroute dig nslookup "
        "host whois http https xh aria2c axel gh glab hub aws gcloud gsutil az kubectl helm terraform ansible "
        "docker podman skopeo pip pip3 pipx uvx npx bunx brew apt apt-get yum dnf apk pacman snap flatpak gem "
        "composer nuget conda mamba openssl mail sendmail mutt msmtp nmap masscan tcpdump rclone s3cmd mc "
        "psql mysql mongosh redis-cli"
    ).split()
)
NETWORK_GIT: Final = frozenset(
    ("push pull fetch clone ls-remote submodule remote send-email request-pull archive svn p4").split()
)
NETWORK_SUB: Final = frozenset(
    (
        "install add update upgrade publish login download sync fetch get ci audit search dlx exec create outdated tool"
    ).split()
)
NETWORK_MANAGERS: Final = frozenset(
    ("npm pnpm yarn bun uv poetry pdm cargo go gem mvn gradle deno rustup pipenv hatch").split()
)
PRINTS_SECRETS: Final = frozenset(
    ("env printenv set export declare typeset compgen security secret-tool keyring pass gpg op vault").split()
)
SHELLS: Final = frozenset(
    (
        "sh bash zsh dash ksh fish csh tcsh busybox eval source . exec xargs parallel python python3 perl "
        "ruby node php lua awk gawk mawk osascript tclsh deno bun powershell pwsh script expect su sudo doas "
        "find env command builtin trap coproc ssh watch nohup timeout nice"
    ).split()
)
DESTROYERS: Final = frozenset(
    (
        "mkfs shred wipefs fdisk sfdisk parted mkswap blkdiscard hdparm truncate dd dropdb srm reboot "
        "shutdown poweroff kill pkill killall"
    ).split()
)
