// Runs the search in a frame where the site is opened from a folder: browsers start no worker from file://.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve));
      this.frame.srcdoc = `<script>postMessage = (data) => frameElement.deliver(data)</script><script src="${url}"></script>`;
      this.frame.deliver = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.loaded.then(() => {
        const view = this.frame.contentWindow;
        view.dispatchEvent(new view.MessageEvent("message", { data }));
      });
    }
  };
}
