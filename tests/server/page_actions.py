"""What the browser tests do on the page."""


def marked(page, card=0):
    """Return the highlighted words of a card, once it is up to date."""
    page.wait_for_selector("#results:not(.stale) article mark")
    return page.locator("#results article").nth(card).locator(".rz-text mark").all_inner_texts()


def enter(page, text):
    """Type a text and wait for its explanation."""
    from playwright.sync_api import expect

    page.get_by_label("Text", exact=True).fill(text)
    expect(page.locator("#results:not(.stale) .rz-text").first).to_have_text(text)
