// Plotly writes style attributes, which the content security policy forbids; set as properties they are allowed.
(() => {
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function setAttribute(name, value) {
    if (name === "style") this.style.cssText = value;
    else set.call(this, name, value);
  };
})();
