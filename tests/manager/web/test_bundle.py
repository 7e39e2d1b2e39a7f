"""Modules as one script: in the order of their imports, each with names of its own."""

import pytest

from manager.web.bundle import bundled_script

APP = """// The page.

import { shown as count, LIMIT } from "./count.js";
import {
  name,
} from "./views/pod.js";
import * as pod from "./views/pod.js";

const text = `${name()} ${count(LIMIT)}`;
"""
COUNT = "export const LIMIT = 2;\n\nexport function shown(number) {\n  return number;\n}\n"
POD = """import { LIMIT } from "../count.js";

export async function name() {
  return LIMIT;
}

export class Pod {}
"""


def test_a_module_comes_after_those_that_it_imports_once() -> None:
    assert bundled_script({"app.js": APP, "count.js": COUNT, "views/pod.js": POD, "unused.js": ""}, "app.js") == (
        """const $count_js = (() => { // count.js
const LIMIT = 2;

function shown(number) {
  return number;
}
return { LIMIT, shown };
})();

const $views_pod_js = (() => { // views/pod.js
const { LIMIT } = $count_js;

async function name() {
  return LIMIT;
}

class Pod {}
return { name, Pod };
})();

const $app_js = (() => { // app.js
// The page.

const { shown: count, LIMIT } = $count_js;
const {
  name,
} = $views_pod_js;
const pod = $views_pod_js;

const text = `${name()} ${count(LIMIT)}`;
return {  };
})();
"""
    )


def test_modules_that_import_each_other_are_an_error() -> None:
    modules = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(ValueError, match=r"^a\.js: imports itself by b\.js$"):
        bundled_script(modules, "a.js")


@pytest.mark.parametrize(
    "line", ['import "./b.js";', 'import b from "./b.js";', "export default 1;", "export { b };", "export let b = 1;"]
)
def test_other_forms_are_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="cannot be bundled"):
        bundled_script({"a.js": f"{line}\n", "b.js": ""}, "a.js")
