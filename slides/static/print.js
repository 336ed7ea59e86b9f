/* In a PDF all slides are read aloud. reveal.js hides those from a screen reader that are not the
   present one, and forgets that on paper each of them is. */
document.addEventListener("DOMContentLoaded", () => {
	Reveal.on("pdf-ready", () => {
		for (const slide of document.querySelectorAll(".pdf-page [aria-hidden], .pdf-page [hidden]")) {
			slide.removeAttribute("aria-hidden");
			slide.removeAttribute("hidden");
		}
	});
});
