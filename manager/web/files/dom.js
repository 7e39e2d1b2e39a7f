// Elements as views describe them, and their application to the page.
//
// A view returns what it wants to see; `patch` changes what differs, so that focus, scroll position and open details
// stay as they are. Children with a `key` are recognised by it, so what is inserted before them changes none of them.
// Text is only ever set as text, so nothing that a tenant writes becomes markup.

import { countBy } from "./cluster.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPS = Symbol("props");
const HAVE_VALUE = new Set(["INPUT", "SELECT"]); // what the reader has entered, which no attribute changes

/** Returns the description of an element. Children that are null or false are left out. */
export function h(tag, props, ...children) {
  const present = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return {
    tag,
    props: props ?? {},
    children: present.map((child) => (typeof child === "object" ? child : String(child))),
  };
}

/** Makes the children of an element those that are described. */
export function patch(parent, children, namespace = null) {
  const coming = countBy(children, keyOf);
  let next = parent.firstChild;
  for (const child of children) {
    const key = keyOf(child);
    if (key !== undefined) next = atKey(parent, next, key, coming);
    coming.set(key, coming.get(key) - 1);
    const current = next;
    next = current && current.nextSibling;
    if (typeof child === "string") {
      patchText(parent, current, child);
    } else {
      patchElement(parent, current, child, child.tag === "svg" ? SVG : namespace);
    }
  }
  while (next) {
    const surplus = next;
    next = next.nextSibling;
    surplus.remove();
  }
}

/** Returns the child with this key, at the place of `next`, or an empty one there if it has none. */
function atKey(parent, next, key, coming) {
  while (next && keyOfNode(next) !== key && !coming.get(keyOfNode(next))) {
    const surplus = next;
    next = next.nextSibling;
    surplus.remove();
  }
  if (next && keyOfNode(next) === key) return next;
  let found = next;
  while (found && keyOfNode(found) !== key) found = found.nextSibling;
  return parent.insertBefore(found ?? document.createTextNode(""), next);
}

function keyOf(child) {
  return child.props?.key;
}

function keyOfNode(node) {
  return node[PROPS]?.key;
}

function patchText(parent, current, text) {
  if (current && current.nodeType === Node.TEXT_NODE) {
    if (current.data !== text) current.data = text;
  } else {
    place(parent, current, document.createTextNode(text));
  }
}

function patchElement(parent, current, wanted, namespace) {
  const fits =
    current && current.nodeName.toLowerCase() === wanted.tag.toLowerCase() && keyOfNode(current) === wanted.props.key;
  const element = fits ? current : create(wanted.tag, namespace);
  setProps(element, wanted.props);
  patch(element, wanted.children, namespace);
  if (!fits) place(parent, current, element);
  if (
    HAVE_VALUE.has(element.nodeName) &&
    "value" in wanted.props &&
    element.value !== wanted.props.value
  ) {
    element.value = wanted.props.value; // after its children: the options of a select
  }
}

function create(tag, namespace) {
  return namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
}

function place(parent, current, node) {
  if (current) parent.replaceChild(node, current);
  else parent.appendChild(node);
}

function setProps(element, props) {
  const before = element[PROPS] ?? {};
  for (const name of Object.keys(before)) {
    if (!(name in props)) setProp(element, name, null);
  }
  for (const [name, value] of Object.entries(props)) {
    if (before[name] !== value) setProp(element, name, value);
  }
  element[PROPS] = props;
}

function setProp(element, name, value) {
  if (name === "key" || (name === "value" && HAVE_VALUE.has(element.nodeName))) return;
  if (name.startsWith("on")) element[name] = value;
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}
