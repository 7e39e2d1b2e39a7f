// Elements as views describe them, and their application to the page.
//
// A view returns what it wants to see; `patch` changes what differs, so that focus, scroll position and open details
// stay as they are. Text is only ever set as text, so nothing that a tenant writes becomes markup.

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
  let next = parent.firstChild;
  for (const child of children) {
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

function patchText(parent, current, text) {
  if (current && current.nodeType === Node.TEXT_NODE) {
    if (current.data !== text) current.data = text;
  } else {
    place(parent, current, document.createTextNode(text));
  }
}

function patchElement(parent, current, wanted, namespace) {
  const fits =
    current && current.nodeName.toLowerCase() === wanted.tag.toLowerCase() && current[PROPS]?.key === wanted.props.key;
  const element = fits ? current : create(wanted.tag, namespace);
  setProps(element, wanted.props);
  patch(element, wanted.children, namespace);
  if (!fits) place(parent, current, element);
  if (
    HAVE_VALUE.has(element.nodeName) &&
    "value" in wanted.props &&
    element.value !== wanted.props.value &&
    document.activeElement !== element
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
