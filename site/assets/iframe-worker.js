// Browsers start no worker from a file: this runs the script of one in a hidden frame, so that the search works there.
// The theme's `offline` plugin takes a script of this name instead of one that it would load from a network.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const written = this.frame.contentDocument;
      this.inner = this.frame.contentWindow;
      this.inner.postMessage = (data) => this.hears(data);
      this.inner.importScripts = (...urls) => urls.reduce((done, one) => done.then(() => this.runs(one)), Promise.resolve());
      this.ready = this.runs(url);
      written.title = "search";
    }

    hears(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    runs(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.appendChild(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
